"""Polyvox as a service: speaks Label Studio, keeps state, runs jobs. Imports `model`, never the other way round."""
