"""The Talos machine API of every machine that is switched on."""
