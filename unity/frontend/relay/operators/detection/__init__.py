"""Detection: anchors, boxes and their suppression, maps read at regions and between pixels."""
