"""The store's port, and the embedded store behind it: files made durable, locks, journals and blobs."""
