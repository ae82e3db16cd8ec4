package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
)

// instrument returns the text of a file of the library in which the first statement of
// every declared function and method records that it is entered. It adds no line, so that
// the compiler's errors name the lines of the file.
func instrument(root, path string) ([]byte, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	insert := func(at token.Pos, text string) {
		offset := positions.PositionFor(at, false).Offset
		out.Write(source[done:offset])
		out.WriteString(text)
		done = offset
	}
	insert(file.Name.End(), fmt.Sprintf("; import requestpathtrace %q", library+"/"+tracePackage))
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
			insert(f.Body.Lbrace+1, fmt.Sprintf("requestpathtrace.Enter(%q, %q);", filepath.ToSlash(name), functionName(f)))
		}
	}
	out.Write(source[done:])
	out.WriteString("\nvar _ = requestpathtrace.Enter\n") // a file without functions is to use its import
	return out.Bytes(), nil
}

// functionName is a function's name, after its receiver's type if it is a method.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return "(" + types.ExprString(f.Recv.List[0].Type) + ")." + f.Name.Name
}
