"""What Polyvox does, one service a noun: reading votes, training, predicting, delivering. They know no HTTP request."""
