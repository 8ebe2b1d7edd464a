"""Files of a table on local disks and in object stores."""
