"""A rehearsal of the real thing on one Linux machine: emulated Proxmox and Talos, a real Kubernetes control plane."""
