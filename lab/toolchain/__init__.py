"""Where the lab's programs come from: PATH, the cache, the vendor's download, or a build from Go modules."""
