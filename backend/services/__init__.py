"""What Polyvox does, one service a noun: reading votes, training, predicting, delivering. Services know no HTTP request."""
