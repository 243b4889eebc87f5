"""Modules whose files the lab reads (charts, CRDs), with the sums they must have."""

from collections.abc import Mapping

SUMS: Mapping[tuple[str, str], str] = {
    ("github.com/bitnami-labs/sealed-secrets", "v0.36.6"): "h1:oXj+YUIp/eS8NI81BYLcF8yPwxBf8d+gRpTHJ/Qg/R8=",
    ("github.com/cilium/cilium", "v1.20.1"): "h1:omXYGsC9nvDEdTXZpOVa3VlpB1QTok9OHDPSQbnPoJg=",
    ("github.com/controlplaneio-fluxcd/flux-operator", "v0.58.1"): "h1:ME/p3jGf5h9bNmQ5dhQBSjvj0G+7NTI1k3At+pCscis=",
    ("github.com/sergelogvinov/proxmox-csi-plugin", "v0.18.1"): "h1:TgXiSKP94cvLRUm+aSdYRwKWKR5QAb4G2ecMGFQvzcE=",
    ("sigs.k8s.io/gateway-api", "v1.6.1"): "h1:mock6phZbI6rvZerwrVNk7hVNymQgHo+6sJ81Ia7ftY=",
    ("sigs.k8s.io/metrics-server", "v0.9.0"): "h1:nlqqZ2H0Xfko8eJC/1qaNVVT17hu4rxndkOi22KTZ4w=",
}
