"""Detection for every frontend: boxes that others cover, maps read at regions."""
