"""What a page is made of: the frame, where the reader is, the scene, words."""
