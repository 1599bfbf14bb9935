"""What is taken out of events mechanically: facts, todos, names."""
