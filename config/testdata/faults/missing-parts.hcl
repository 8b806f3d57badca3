site "alpha" {}
