"""What ralf does when a client's hook calls: one handler for all clients."""
