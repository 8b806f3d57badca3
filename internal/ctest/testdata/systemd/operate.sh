# What an operator does with the packages and units of impi: each line of its output that the test
# wants begins with "is: ".
cd /root
is() { echo "is: $*"; }
settles() { # settles UNIT STATE: within 20 s
  for _ in {1..200}; do
    [ "$(systemctl show -p ActiveState --value "$1")" = "$2" ] && break
    sleep 0.1
  done
  is "$3 $(systemctl show -p ActiveState --value "$1") $(systemctl show -p Result --value "$1")"
}
pid() { systemctl show -p MainPID --value "${1:-impi-names}"; }
restarts() { # restarts UNIT: waits for the first
  for _ in {1..200}; do [ "$(systemctl show -p NRestarts --value "$1")" = 1 ] && break; sleep 0.1; done
}

dpkg -i --force-depends /trial/old.deb
is "installed $(systemctl is-enabled impi-names)"
(umask 077; od -An -N8 -tu8 /dev/urandom >/etc/impi/names.key)
(umask 077; od -An -N8 -tu8 /dev/urandom >/etc/impi/chem.key)
systemctl enable --now impi-names
settles impi-names active names
is "confined $(grep -cE '^(CapEff:\s0+|NoNewPrivs:\s1|Seccomp:\s2)$' /proc/$(pid)/status)"
is "user $([ "$(stat -c %u /proc/$(pid))" != 0 ] && echo own)"
systemctl reload impi-names
settles impi-names active reloaded
systemctl kill -s KILL impi-names
restarts impi-names
settles impi-names active restarted

printf 'CLIENTS=2\nHOST=127.0.0.1\nPORT=7800\n' >/etc/impi/chem.env
systemctl start impi-server@chem
settles impi-server@chem active server
systemctl kill -s KILL impi-server@chem
restarts impi-server@chem
settles impi-server@chem active "killed server"
printf 'CLIENTS=1\nHOST=127.0.0.1\nPORT=7802\nTIMEOUT=1s\n' >/etc/impi/late.env
cp /etc/impi/chem.key /etc/impi/late.key
systemctl start impi-server@late
settles impi-server@late failed "nobody came"
is "started again $(systemctl show -p NRestarts --value impi-server@late)"
systemctl reset-failed impi-server@late
impicc -o names /trial/names.c
for site in 0 1; do
  cat >site$site.hcl <<JOB
site "s$site" {
  client = $site
  server = "127.0.0.1:7800"
  auth "key" { file = "/etc/impi/chem.key" }
}
host    { address = "127.0.0.1"  procs = 1 }
program { command = ["./names"] }
names { server = "127.0.0.1:7900"  scope = "trial"  auth "key" { file = "/etc/impi/names.key" } }
JOB
  (timeout 60 impi-node -config site$site.hcl; is "site $site ends with $?") &
done
wait
settles impi-server@chem inactive "server after the job"

# A server with certificates, which are rotated while it runs.
impi-node cert init -sites tls >/dev/null
for suffix in pem key; do install -m 640 -g impi certs/tls.$suffix /etc/impi/tls-cert.$suffix; done
install -m 644 certs/ca.pem /etc/impi/ca.pem
cp /etc/impi/chem.key /etc/impi/tls.key
printf 'CLIENTS=1\nHOST=127.0.0.1\nPORT=7801\nOPTIONS=-cert /etc/impi/tls-cert.pem -key /etc/impi/tls-cert.key -ca /etc/impi/ca.pem\n' >/etc/impi/tls.env
taken() { journalctl -u impi-server@tls -o cat | grep -c "$1"; }
systemctl start impi-server@tls
settles impi-server@tls active "server with certificates"
impi-node cert issue -renew tls >/dev/null
for suffix in pem key; do install -m 640 -g impi certs/tls.$suffix /etc/impi/tls-cert.$suffix; done
systemctl reload impi-server@tls
for _ in {1..200}; do [ "$(taken 'new connections use the certificate')" = 1 ] && break; sleep 0.1; done
is "rotated $(taken 'new connections use the certificate')"
chmod 600 /etc/impi/tls-cert.key
systemctl reload impi-server@tls
for _ in {1..200}; do [ "$(taken 'reloaded nothing')" = 1 ] && break; sleep 0.1; done
is "unreadable $(taken 'reloaded nothing.*permission denied')"
settles impi-server@tls active "server after rotation"
systemctl stop impi-server@tls

systemctl start impi-server@chem
settles impi-server@chem active "second server"
now=$(pid) server=$(pid impi-server@chem)
dpkg -i --force-depends /trial/next.deb
is "upgraded names $([ "$(pid)" = "$now" ] || echo restarted)"
settles impi-names active "upgraded names"
is "upgraded server $([ "$(pid impi-server@chem)" = "$server" ] && echo untouched)"
is "failed $(systemctl --no-legend --plain list-units --failed | wc -l)"
dpkg -r impi
settles impi-names inactive "removed names"
settles impi-server@chem inactive "removed server"
is "units $(ls /usr/lib/systemd/system | grep -c impi)"

# The same by RPM, whose scripts get numbers.
rpm -i --nodeps /trial/old.rpm
is "rpm installed $(systemctl is-enabled impi-names)"
systemctl enable --now impi-names
settles impi-names active "rpm names"
now=$(pid)
rpm -U --nodeps /trial/next.rpm
is "rpm upgraded names $([ "$(pid)" = "$now" ] || echo restarted)"
settles impi-names active "rpm upgraded names"
rpm -e impi
settles impi-names inactive "rpm removed names"
is "rpm units $(ls /usr/lib/systemd/system | grep -c impi) $(systemctl show -p LoadState --value impi-names)"
