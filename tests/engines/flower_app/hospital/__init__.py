"""An app of Flower."""
