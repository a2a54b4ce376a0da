"""The files of the live page, and the code that makes one HTML file of them."""
