"""Documents: a journal of records, folded into a state, shown as a file that people may edit. One machinery for all."""
