package presets

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
)

// What the APIs of language models have in common: a request names its model and how long the answer may be, and the answer says how
// many tokens were used, in the last event of a stream.

// askedOf is what a request asks of a model.
type askedOf struct {
	Model  string `json:"model"`
	Most   int    `json:"max_tokens"`
	MostB  int    `json:"max_completion_tokens"`
	MostC  int    `json:"max_output_tokens"`
	Gemini struct {
		Most int `json:"maxOutputTokens"`
	} `json:"generationConfig"`
	Bedrock struct {
		Most  int `json:"maxTokens"`
		MostB int `json:"max_new_tokens"`
	} `json:"inferenceConfig"`
	length int  // of the body
	unread bool // it has a body that could not be read
}

const (
	mostAsked  = 1 << 20 // bytes of a request's body that are read
	bytesOf    = 4       // bytes of a token, about: https://help.openai.com/en/articles/4936856
	usualReply = 1024    // tokens of an answer whose length the request does not bound
)

// asked reads a request's body, if it can be read twice.
func asked(req *http.Request) (of askedOf) {
	if req.Body == nil || req.Body == http.NoBody {
		return of
	}
	of.length, of.unread = max(0, int(req.ContentLength)), true
	if req.GetBody == nil {
		return of
	}
	body, err := req.GetBody()
	if err != nil {
		return of
	}
	defer func() { _ = body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(body, mostAsked))
	of.length = max(of.length, len(text))
	if err := json.Unmarshal(text, &of); err != nil { // it is longer than that, or it is no JSON
		if named := modelName.find(string(text)); named != nil {
			of.Model = named[1]
		}
	}
	of.unread = of.Model == ""
	return of
}

// tokens returns about how many tokens go in, and how many come out at the most.
func (of *askedOf) tokens() (in, out int) {
	for _, n := range [...]int{of.Most, of.MostB, of.MostC, of.Gemini.Most, of.Bedrock.Most, of.Bedrock.MostB, usualReply} {
		if n > 0 && out == 0 {
			out = n
		}
	}
	return of.length / bytesOf, out
}

// tokensOf returns the Units of an API that counts all tokens together.
func tokensOf(req *http.Request) map[string]int {
	of := asked(req)
	in, out := of.tokens()
	return map[string]int{"tokens": in + out}
}

// modelOf returns the Keys of an API whose limits are each model's.
// A request without a body has none, and of one whose body cannot be read it is not known.
func modelOf(req *http.Request) map[string]string {
	of := asked(req)
	if of.unread {
		return nil
	}
	return map[string]string{"model": of.Model}
}

// modelName finds the model in JSON that was cut off: most clients name it first.
var modelName = pattern{text: `"model"\s*:\s*"([^"\\]{1,200})"`}

// A tokenCount finds a number by its name in JSON that may begin and end anywhere.
type tokenCount struct {
	name string
	once sync.Once
	expr *regexp.Regexp
}

// last returns the last of those numbers. Names in texts have a backslash before their quotes.
func (c *tokenCount) last(in []byte) (n int, found bool) {
	c.once.Do(func() { c.expr = regexp.MustCompile(`[{,\s]"` + c.name + `"\s*:\s*([0-9]{1,9})\b`) })
	all := c.expr.FindAllSubmatch(in, -1)
	if len(all) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(string(all[len(all)-1][1]))
	return n, err == nil
}

var (
	totalTokens      = tokenCount{name: "total_tokens"}
	inputTokens      = tokenCount{name: "input_tokens"}
	cacheWriteTokens = tokenCount{name: "cache_creation_input_tokens"}
	outputTokens     = tokenCount{name: "output_tokens"}
)

// spentTokens returns what a response's usage says, of an API that counts all tokens together.
func spentTokens(_ *http.Response, body []byte) map[string]int {
	if n, found := totalTokens.last(body); found {
		return map[string]int{"tokens": n}
	}
	return nil
}
