"""Reads a tree that Flux applies and says in which order it comes up, and what would keep it from coming up."""
