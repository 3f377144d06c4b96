// keeps a room buildable before its first file
