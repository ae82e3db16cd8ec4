package provider

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"

	"github.com/ration-go/ration/internal/jsonprefix"
)

// parseMarkup reads XML as if it were JSON, so that the same paths find the same things in both: elements and attributes are members, and
// the outermost element is the object itself, or its only member if it has nothing but text.
//
//	<Error><Code>SlowDown</Code></Error>       {"Code": "SlowDown"}
//	<error code="429">Too many</error>         {"code": "429", "error": "Too many"}
//
// Of a page for people it reads the title, the first heading and the text: {"html": {"title": …, "h1": …, "text": …}}. What stands behind a syntax
// error is not there.
func parseMarkup(text []byte, isHTML bool) jsonprefix.Value {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = false
	decoder.CharsetReader = func(_ string, text io.Reader) (io.Reader, error) { return text, nil } // what is searched is in ASCII or UTF-8
	if isHTML {
		decoder.AutoClose, decoder.Entity = xml.HTMLAutoClose, xml.HTMLEntity
		return parsePage(decoder)
	}
	for {
		token, err := decoder.Token()
		if err != nil {
			return jsonprefix.Value{}
		}
		if start, is := token.(xml.StartElement); is {
			root := parseElement(decoder, start, 0)
			if text := (jsonprefix.Member{Name: start.Name.Local, Value: jsonprefix.Value{Kind: jsonprefix.String, Text: root.Text}}); text.Value.Text != "" {
				root.Members = append(root.Members, text)
			}
			return jsonprefix.Value{Kind: jsonprefix.Object, Members: root.Members}
		}
	}
}

// deepestElement is how deep elements are read.
const deepestElement = 16

// parseElement returns an element: a string, or an object if it has elements or attributes.
func parseElement(decoder *xml.Decoder, start xml.StartElement, depth int) jsonprefix.Value {
	element := jsonprefix.Value{Kind: jsonprefix.String}
	for _, attribute := range start.Attr {
		if attribute.Name.Space == "" && attribute.Name.Local != "xmlns" {
			element.Kind = jsonprefix.Object
			element.Members = append(element.Members, jsonprefix.Member{Name: attribute.Name.Local, Value: jsonprefix.Value{Kind: jsonprefix.String, Text: attribute.Value}})
		}
	}
	for {
		token, err := decoder.Token()
		if err != nil {
			return element
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth == deepestElement {
				return element
			}
			element.Kind = jsonprefix.Object
			element.Members = append(element.Members, jsonprefix.Member{Name: token.Name.Local, Value: parseElement(decoder, token, depth+1)})
		case xml.CharData:
			element.Text = strings.TrimSpace(element.Text + string(token))
		case xml.EndElement:
			if depth > 0 && len(element.Members) > 0 && element.Text != "" {
				element.Members = append(element.Members, jsonprefix.Member{Name: "message", Value: jsonprefix.Value{Kind: jsonprefix.String, Text: element.Text}})
			}
			return element
		}
	}
}

// parseText returns a short text that is neither, as {"text": …}.
func parseText(text []byte) jsonprefix.Value {
	const longest = 512
	if len(text) > longest {
		return jsonprefix.Value{}
	}
	return jsonprefix.Value{Kind: jsonprefix.Object, Members: []jsonprefix.Member{{Name: "text", Value: jsonprefix.Value{Kind: jsonprefix.String, Text: string(text)}}}}
}

// parsePage returns what people see of a page.
func parsePage(decoder *xml.Decoder) jsonprefix.Value {
	texts := map[string]string{}
	var inside []string
	for {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = append(inside, strings.ToLower(token.Name.Local))
		case xml.EndElement:
			inside = inside[:max(0, len(inside)-1)]
		case xml.CharData:
			in := ""
			if len(inside) > 0 {
				in = inside[len(inside)-1]
			}
			switch text := strings.Join(strings.Fields(string(token)), " "); {
			case text == "" || in == "script" || in == "style":
			case (in == "title" || in == "h1") && texts[in] == "":
				texts[in] = text
			default:
				texts["text"] += text + " "
			}
		}
	}
	var page jsonprefix.Value
	for _, name := range []string{"title", "h1", "text"} {
		if texts[name] != "" {
			page.Members = append(page.Members, jsonprefix.Member{Name: name, Value: jsonprefix.Value{Kind: jsonprefix.String, Text: texts[name]}})
		}
	}
	page.Kind = jsonprefix.Object
	return jsonprefix.Value{Kind: jsonprefix.Object, Members: []jsonprefix.Member{{Name: "html", Value: page}}}
}
