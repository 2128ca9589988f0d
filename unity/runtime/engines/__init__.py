"""External engines: what running asks of one (`engine.py`), and those that Unity brings."""
