"""Programs of others to compare with, run inside the peers' environment. They import nothing of bertie."""
