"""What a user is promised, as black boxes: see `user` for what they may use, and `test_black_box`."""
