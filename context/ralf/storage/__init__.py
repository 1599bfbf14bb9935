"""The embedded store: journals, blobs and their archives as plain files. The port is `ralf.store`."""
