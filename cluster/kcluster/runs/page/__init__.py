"""The files of the live page, and what makes one HTML file of them."""
