// Package dashboard has a real browser look at the page of package dashboard: that its numbers are those of
// Usage, that its chart moves, that a pause shows in another window within a second, that it survives a
// Redis that is started again, that nothing is wrong in the browser's console, and that it can be used
// without a mouse and by a screen reader, as far as axe-core can tell.
//
//	go -C tests/dashboard test -v ./...
//
// needs chromium (apt-get install chromium), and npm to fetch axe-core. Without them it skips what needs
// them. With -screenshots DIR it writes pictures of the page, those of docs/dashboard among them.
package dashboard
