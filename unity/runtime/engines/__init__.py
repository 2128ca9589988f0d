"""The engines that Unity brings, as far as running needs them."""
