"""Handwritten digits: eight by eight pixels, ten classes, seconds to train."""
