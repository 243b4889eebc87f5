module github.com/hashicorp/terraform-provider-tls/shim

go 1.26

require github.com/hashicorp/terraform-provider-tls v1.2.1-0.20260819085117-d044ca7c6f52
