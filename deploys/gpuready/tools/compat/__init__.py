"""Will this image run here? CUDA compatibility as data (with date and source) and a predictor, both pure."""
