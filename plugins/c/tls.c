/* AutoMTLS of the control connection, with OpenSSL 3: each end accepts the one certificate that the
 * other one has told it. Built with IMPI_NO_TLS, the library leaves it out. */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef IMPI_NO_TLS

/* without TLS there is no certificate, which the node notices and reports */
const char *tls_start(void) { return ""; }
int tls_open(int fd) { return (void)fd, 0; }
void tls_close(void) { }
ssize_t tls_read(int fd, void *to, size_t n) { return recv(fd, to, n, MSG_DONTWAIT); }
ssize_t tls_write(int fd, const void *from, size_t n) { return send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT); }

#else

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static SSL_CTX *context; /* NULL: the job's file says auto_mtls = false */
static SSL *tls;

static const long lifetime = 30L * 365 * 24 * 3600; /* in seconds: longer than any process */

static void fatal_tls(const char *what)
{
	char text[256] = "";
	ERR_error_string_n(ERR_get_error(), text, sizeof text);
	fprintf(stderr, "[ERROR] %s for the control connection: %s\n", what, text);
	exit(1);
}

/* gRPC wants to hear that HTTP/2 is spoken. */
static int on_alpn(SSL *s, const unsigned char **out, unsigned char *size, const unsigned char *in, unsigned in_size, void *arg)
{
	static const unsigned char h2[] = { 2, 'h', '2' };
	(void)s, (void)arg;
	return SSL_select_next_proto((unsigned char **)out, size, h2, sizeof h2, in, in_size) == OPENSSL_NPN_NEGOTIATED
		? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void extend(X509 *cert, int kind, const char *value)
{
	X509V3_CTX c;
	X509V3_set_ctx_nodb(&c);
	X509V3_set_ctx(&c, cert, cert, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &c, kind, value);
	if (e == NULL || !X509_add_ext(cert, e, -1))
		fatal_tls("no certificate can be made");
	X509_EXTENSION_free(e);
}

static X509 *own_certificate(EVP_PKEY *key)
{
	X509 *cert = need(X509_new());
	X509_NAME *name = X509_get_subject_name(cert);
	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), lifetime);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(cert, name);
	extend(cert, NID_basic_constraints, "critical,CA:TRUE");
	extend(cert, NID_key_usage, "critical,digitalSignature,keyCertSign");
	extend(cert, NID_ext_key_usage, "serverAuth");
	extend(cert, NID_subject_alt_name, "DNS:localhost");
	if (X509_sign(cert, key, EVP_sha256()) == 0)
		fatal_tls("no certificate can be signed");
	return cert;
}

/* base64 of the certificate, without padding. */
static char *encoded(X509 *cert)
{
	unsigned char *der = NULL;
	int n = i2d_X509(cert, &der);
	if (n < 0)
		fatal_tls("no certificate can be written");
	char *text = need(malloc((size_t)n * 2 + 8));
	int length = EVP_EncodeBlock((unsigned char *)text, der, n);
	while (length > 0 && text[length - 1] == '=')
		text[--length] = 0;
	OPENSSL_free(der);
	return text;
}

static void trust(const char *pem)
{
	BIO *b = need(BIO_new_mem_buf(pem, -1));
	X509 *node = PEM_read_bio_X509(b, NULL, NULL, NULL);
	if (node == NULL || !X509_STORE_add_cert(SSL_CTX_get_cert_store(context), node))
		fatal_tls("PLUGIN_CLIENT_CERT has no certificate");
	X509_free(node);
	BIO_free(b);
}

const char *tls_start(void)
{
	const char *pem = getenv("PLUGIN_CLIENT_CERT");
	if (pem == NULL || *pem == 0)
		return "";
	EVP_PKEY *key = EVP_EC_gen("P-256");
	context = SSL_CTX_new(TLS_server_method());
	if (key == NULL || context == NULL)
		fatal_tls("no key can be made");
	X509 *cert = own_certificate(key);
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_alpn_select_cb(context, on_alpn, NULL);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	trust(pem);
	if (SSL_CTX_use_certificate(context, cert) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1)
		fatal_tls("the certificate cannot be used");
	char *text = encoded(cert);
	X509_free(cert);
	EVP_PKEY_free(key);
	return text;
}

int tls_open(int fd)
{
	if (context == NULL)
		return 0;
	tls = SSL_new(context);
	if (tls == NULL || SSL_set_fd(tls, fd) != 1)
		return -1;
	SSL_set_accept_state(tls);
	return 0;
}

void tls_close(void)
{
	SSL_free(tls);
	tls = NULL;
}

/* moved makes of what OpenSSL says what a system call would. */
static ssize_t moved(int n)
{
	if (n > 0)
		return n;
	switch (SSL_get_error(tls, n)) {
	case SSL_ERROR_WANT_READ:
	/* a socket of this machine has room again soon, and read is tried again */
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		ERR_clear_error();
		errno = EPROTO;
		return -1;
	}
}

ssize_t tls_read(int fd, void *to, size_t n)
{
	return tls ? moved(SSL_read(tls, to, (int)n)) : recv(fd, to, n, MSG_DONTWAIT);
}

ssize_t tls_write(int fd, const void *from, size_t n)
{
	if (tls == NULL)
		return send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == 0 ? 0 : moved(SSL_write(tls, from, (int)n));
}

#endif
