"""What TVM saves besides text: JSON of objects, parameters, archives."""
