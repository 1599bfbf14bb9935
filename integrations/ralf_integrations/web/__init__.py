"""One local page for a person: sessions, routes, what agents were really handed, tasks, memory and runs, read only."""
