// Package layout guards the shape of the module: how many files a folder has and how long
// they are, who imports whom, that every exported name is documented, and that nothing of a
// test run or of a machine is in the tree.
package layout
