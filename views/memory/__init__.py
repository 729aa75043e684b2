"""Will it fit? The page's parts: where a config comes from, tables, figures, and the side-by-side with a real run."""
