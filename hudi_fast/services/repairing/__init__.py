"""What does not belong to the table any more: orphan files, dangling instants."""
