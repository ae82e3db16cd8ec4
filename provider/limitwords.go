package provider

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
)

// Refusals say in many words that a limit is why. Where the status says that the request was refused, a sentence of a limit and of its end is
// enough; where the status is one of many mistakes of the caller, the words have to name a limit of calls; and where the status is 200 the
// body must also say that it is an error.

// allText is a path of [MatchRule.Field], for the rules that hold for every provider: all that the body says in words.
const allText = "@text"

// limitPhrases name a limit of calls.
var limitPhrases = strings.Split("rate limit|rate-limit|ratelimit|rate_limit|too many requests|too many calls|too many queries|too many api|too many attempts|throttl|"+
	"request limit|requests limit|call limit|calls limit|api limit|usage limit|usage cap|query limit|frequency limit|limit exceeded|limit reached|limit has been|limit is exceeded|"+
	"limit was exceeded|hourly limit|daily limit|monthly limit|quota exceeded|quota has been|quota is exce|quota is exh|quota is used|quota is spent|quota will be|quota limit|quota reached|quota exhausted|over quota|out of quota|"+
	"exceeds your quota|exceeded quota|exceeded the quota|exceeded your quota|exceeded your current quota|exceeded your daily|exceeded your monthly|exceeded your hourly|"+
	"exceeded the daily|exceeded the number of allowed|exceeded the limit of|maximum number of requests|maximum number of calls|maximum number of api|maximum number of queries|maximum number of allowed|maximum number of attempts|number of requests|number of api calls|"+
	"frequency is too high|access frequency|too frequent|access limit|run over your|number of daily requests|number of times the|flow control|requests per|calls per|queries per|requests exceed|rate exceeded|request rate|slow down|being rate|rate threshold|over qps|over rate|budget exhausted|out of call volume|"+
	"zu viele anfragen|trop de requ|límite de peticiones|límite de solicitudes|demasiadas solicitudes|demasiadas peticiones|muitas solicita|muitas requisi|limite de requisi|"+
	"excedido o número|consumo indevido|troppe richieste|przekroczono limit|çok fazla istek|слишком много запрос|превышен лимит|превышено количество|суточный лимит|лимит запрос|лимит по запрос|"+
	"limit erreicht|kontingent|zu häufig|limite atteinte|limite dépassé|trop de tentatives|trop souvent|nombre maximal de|limite diario|límite diario|límite de uso|demasiados intentos|"+
	"demasiadas llamadas|demasiadas consultas|superado el límite|excedido el límite|limite diário|limite excedido|limite atingido|excesso de requisi|muitas tentativas|limite raggiunto|superato il limite|"+
	"zbyt wiele|zbyt często|przekroczony limit|limit aşıldı|çok sık|слишком часто|лимит исчерпан|исчерпан лимит|terlalu banyak permintaan|quá nhiều yêu cầu|vượt quá|"+
	"达到上限|已达上限|超限|太频繁|太快|超出频率|访问受限|流量控制|上限に達|制限に達|回数制限|アクセスが集中|한도를 초과|한도 초과|횟수 제한|너무 많은 요청|"+
	"过于频繁|请求频率|频率限制|频率超限|请求次数|调用次数|请求量|访问次数|最多访问|超过限制|超出限制|配额|限流|リクエストが多|レート制限|リクエスト数|アクセス制限|요청이 너무|요청 한도|거래건수를 초과|호출 횟수", "|")

// limitEnds is a sentence of a limit and of its end, or of the end of a limit.
var limitEnds = regexp.MustCompile(`\b(?:limits?|quotas?|cap|usage|allowance|volume|rates?|requests|calls|queries|credits|points)\b[^.\n]{0,60}\b(?:exceed(?:ed|s|ing)?|reach(?:ed)?|exhausted|depleted|used up|hit|spent|over)\b|` +
	`\b(?:exceed(?:ed|s|ing)?|reach(?:ed)?|exhausted|hit|over|out of|used up|run out of|used all)\b[^.\n]{0,60}\b(?:limits?|quotas?|cap|usage|allowance|volume|rates?|requests|calls|queries|credits|points)\b|` +
	`(?:quota|limite|límite|cuota|kontingent|лимит|kota)[^.\n]{0,60}(?:dépass|atteint|excedid|superad|alcanzad|atingid|überschritten|erreicht|ausgeschöpft|превышен|исчерпан|aşıl|przekroczon)|` +
	`(?:dépassé|excedido|superado|alcanzado|atingido|przekroczono|превышен)[^.\n]{0,60}(?:quota|limite|límite|cuota|limit|лимит)`)

// otherLimits are words of limits that no wait helps against.
var otherLimits = regexp.MustCompile(`\b(?:size|sizes|length|characters?|bytes|storage|file|files|memory|depth|must|should|parameters?|page|maximum of|maximum value|allowed value|seats?|members|price|amount)\b`)

// speaksOfLimit reports whether a body speaks of a limit and of its end.
func speaksOfLimit(r *Response) (words bool) {
	if namesLimit(r) {
		return true
	}
	return slices.ContainsFunc(r.texts(), ends)
}

// namesLimit reports whether a body names a limit of calls.
func namesLimit(r *Response) bool {
	return slices.ContainsFunc(r.texts(), func(text string) bool { return containsLimit(text) && !invalid.MatchString(text) })
}

// invalid finds sentences about what a caller sent or stores.
var invalid = regexp.MustCompile(`\b(?:must be|must not|is not an? |not valid|seats?|tags?|members|characters?|bytes|storage|cannot be|can't be|is required|invite)\b`)

func containsLimit(text string) bool {
	return slices.ContainsFunc(limitPhrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}

// asksForTime reports whether a body says when to try again.
func asksForTime(r *Response) bool {
	if field := r.waitFields()[0]; field.wait > 0 && !isEcho(field.path) {
		return true
	}
	text := r.prose()
	for _, words := range [...]string{"try again", "retry", "tente novamente", "intente", "réessay", "erneut", "spróbuj ponownie", "повторите", "重试", "再试"} {
		if strings.Contains(text, words) {
			return waitInWords(r).Known
		}
	}
	return false
}

// isEcho reports whether a field at a path may be one of what the caller sent: it has another name than those of errors and of envelopes around
// it, or is a setting.
func isEcho(path string) bool {
	top, _, isInside := strings.Cut(path, ".")
	return isInside && !isFailureName(strings.TrimSuffix(top, "[]")) && !envelope.MatchString(top) && top != "data" || strings.HasSuffix(onlyLetters(path), "interval")
}

// texts returns what the body says in words, in lower case: the strings of JSON that are no addresses, with spaces for underscores.
func (r *Response) texts() []string {
	if r.hasTexts {
		return r.said
	}
	r.hasTexts = true
	r.parse()
	left := header.MaxText
	r.said = appendTexts(nil, r.json, &left)
	return r.said
}

func appendTexts(texts []string, v jsonprefix.Value, left *int) []string {
	if v.Kind == jsonprefix.String && v.Text != "" && len(v.Text) <= *left && !strings.Contains(v.Text, "://") || v.Kind == jsonprefix.String && strings.Contains(v.Text, " ") && len(v.Text) <= *left {
		*left -= len(v.Text)
		texts = append(texts, strings.ToLower(strings.ReplaceAll(v.Text, "_", " ")))
	}
	for _, member := range v.Members {
		texts = appendTexts(texts, member.Value, left)
	}
	return texts
}

// A body in ASCII that refuses has one of the refusingWords; and one of the failingWords too, unless it is plain text.
var (
	refusingWords = words("limit", "quota", "exceed", "reached", "exhaust", "deplet", "used up", "spent", "run out", "out of ", "throttl", "too many", "slow down", "429", "retry", "wait",
		"frequen", "request rate", "being rate", "rate threshold", "over qps", "over rate", "requests per", "calls per", "queries per")
	failingWords = words("err", "fault", "exception", "fail", "falha", "fehler", "success", `"ok"`, "status", "code", `"ret`, "message", "note", "information", `"stat"`, "result", "html")
)

func words(all ...string) (found [][]byte) {
	for _, word := range all {
		found = append(found, []byte(word))
	}
	return found
}

// mayRefuse reports whether the body of a success may be a refusal: whether it is worth to be parsed.
func mayRefuse(body []byte) bool {
	lower := bytes.ToLower(body)
	has := func(words [][]byte) bool {
		return slices.ContainsFunc(words, func(word []byte) bool { return bytes.Contains(lower, word) })
	}
	isText := !bytes.ContainsAny(lower[:min(len(lower), 1)], `{[ "`)
	isForeign := bytes.Contains(lower, []byte(`\u`)) || bytes.ContainsFunc(body, func(c rune) bool { return c >= 0x80 })
	return (has(refusingWords) || isForeign) && (isText || has(failingWords))
}

// failsForLimit reports whether a body that came with a success says that the request failed for want of a quota.
func failsForLimit(r *Response) bool {
	text := func(path string) string {
		value, _ := r.Field(path)
		return strings.ToLower(value)
	}
	switch r.parse(); r.form {
	case formText:
		said := strings.TrimSpace(text("text"))
		return len(said) <= 200 && strings.Count(said, "\n") < 2 && !strings.Contains(said, "://") && containsLimit(said) && !strings.Contains(said, "requests per")
	case formPage:
		heads := text("html.title") + " " + text("html.h1")
		return containsLimit(heads) && !strings.Contains(heads, "limits") && !strings.Contains(heads, "limiting") && !strings.Contains(heads, "how ") || strings.TrimSpace(heads) == "429"
	}
	if isItem(r.json) {
		return false
	}
	if said := loneSentence(r.json); len(said) <= 160 && refusal.MatchString(said) {
		return true
	}
	sign := failureSign(r.json)
	said := failureTexts(nil, r.json, sign > aNumber, 0)
	for _, one := range said {
		if containsLimit(one) || containsAny(strings.ReplaceAll(one, " ", "_"), limitCodes) || ends(one) {
			return true
		}
	}
	if len(said) == 0 && sign == aNumber { // which may mean anything
		return slices.ContainsFunc(failureTexts(nil, r.json, true, 0), func(one string) bool {
			return refusal.MatchString(one) || ends(one) || containsLimit(one) && hasEnd.MatchString(one)
		})
	}
	return len(said) > 0 && r.waitFields()[0].wait > 0
}

// ends reports whether a text speaks of the end of a limit of calls.
func ends(text string) bool { return limitEnds.MatchString(text) && !otherLimits.MatchString(text) }

// hasEnd finds the words for the end of a limit, and those of languages that are not written in ASCII.
var hasEnd = regexp.MustCompile(`exceed|reach|too |throttl|frequen|slow|exhaust|used up|over|out of|deplet|wait|retry|again|later|[^ -~\s]`)

// loneSentence returns the sentence of an object that has nothing but it and perhaps a code, as {"message": "Too Many Attempts."} has; in
// lower case.
func loneSentence(v jsonprefix.Value) (said string) {
	for _, member := range v.Members {
		switch strings.ToLower(member.Name) {
		case "message", "msg", "detail":
			said = strings.ToLower(member.Value.Text)
		case "code", "status":
		default:
			return ""
		}
	}
	return said
}

// refusal finds a sentence that nothing but a refusal has.
var refusal = regexp.MustCompile(`\btoo many (?:requests|attempts|calls|queries)\b|\b(?:was|been|being) (?:throttled|rate.limited)\b|\blimit (?:was |is |has been )?(?:exceeded|reached)\b|` +
	`\bquota (?:was |is |has been )?(?:exceeded|reached|exhausted)\b|(?:太|过于)频繁|超限|达到上限`)

// envelope finds the names of fields that a failure has beside what it says.
var envelope = regexp.MustCompile(`(?i)code|status|message|msg|err|fault|exception|success|^ok$|request|trace|time|date|path|host|type|name|title|detail|desc|info|note|reason|text|result|` +
	`version|server|help|doc|url|recommend|limit|quota|rate|retry|wait|reset|remain|count|total|get|response|warn|params|id$|ttl|state|stat$|level|link`)

// isItem reports whether an object is something that was asked for, as a message that could not be delivered is: it has more than two fields
// that no failure has.
func isItem(v jsonprefix.Value) bool {
	others := 0
	for _, member := range v.Members {
		if member.Value.Text != "" && !envelope.MatchString(member.Name) || strings.HasSuffix(strings.ToLower(member.Name), "sid") {
			others++
		}
	}
	return others > 2
}

// failureNames are how the names of fields begin or end that only failures have.
var failureNames = regexp.MustCompile(`(?i)^(?:err|error|fault|exception|fehler|falha)|(?:error|errors|err|exception|error_?message|error_?msg|[^e]fault)s?$`)

// isFailureName reports whether a field's name is of failures.
func isFailureName(name string) bool { return failureNames.MatchString(name) }

// failureTexts appends the strings below fields of failures, and those beside what says that the request failed.
func failureTexts(texts []string, v jsonprefix.Value, failed bool, depth int) []string {
	if depth > deepestField {
		return texts
	}
	beside := slices.ContainsFunc(v.Members, func(m jsonprefix.Member) bool {
		return isFailureName(m.Name) && m.Value.Text != "" && !slices.Contains(noFailures, strings.ToLower(m.Value.Text))
	})
	for _, member := range v.Members {
		below := failed || beside || isFailureName(member.Name)
		switch name := strings.ToLower(member.Name); {
		case len(member.Value.Members) > 0 && (name == "data" || name == "results" || name == "items" || name == "result"):
			continue // what was asked for
		case depth > 0 && name == "info" && hasCodeInWords(v): // which explains the code beside it
			continue
		}
		switch kind := member.Value.Kind; {
		case kind == jsonprefix.String && below, kind == jsonprefix.Number && below && member.Value.Text == "429":
			said := strings.ToLower(strings.ReplaceAll(member.Value.Text, "_", " "))
			if said == "429" {
				said = "too many requests"
			}
			texts = append(texts, said)
		case len(member.Value.Members) > 0:
			if isFailureName(member.Name) && below {
				for _, inner := range member.Value.Members {
					if inner.Value.Kind != jsonprefix.Array && inner.Value.Kind != jsonprefix.Object {
						texts = append(texts, strings.ToLower(strings.ReplaceAll(inner.Name, "_", " "))) // {"errors": {"rateLimit": …}}
					}
				}
			}
			texts = failureTexts(texts, member.Value, below, depth+1)
		}
	}
	return texts
}

// noFailures are values of fields of failures that say that there was none.
var noFailures = []string{"0", "false", "ok", "none", "no", "success"}

// hasCodeInWords reports whether an object has a code that is a word.
func hasCodeInWords(v jsonprefix.Value) bool {
	return slices.ContainsFunc(v.Members, func(m jsonprefix.Member) bool {
		_, isNumber := header.Number(m.Value.Text)
		return strings.EqualFold(m.Name, "code") && m.Value.Text != "" && !isNumber
	})
}

// successes are the values of codes that say that a request did not fail.
var successes = []string{"0", "1", "00", "000", "0000", "00000", "200", "201", "1000", "10000", "20000", "100", "ok", "success", "true", ""}

// failures are the values of a status that say that a request failed.
var failures = []string{"false", "error", "fail", "failed", "failure", "err", "nok", "notok", "ko", "erro", "denied", "rejected", "over_query_limit"}

// failing are parts of a status that says that a request failed.
var failing = regexp.MustCompile(`fail|error|not_processed|denied|reject|exceed`)

// A sign is what says that a request failed.
type sign uint8

const (
	none    sign = iota
	aNumber      // that is none of those of successes
	aFlag        // or a word, or the status of an error
)

// failureSign returns what in an object says that a request failed: a flag, a status or a code.
func failureSign(v jsonprefix.Value) (found sign) {
	for _, member := range v.Members {
		text := strings.ToLower(strings.TrimSpace(member.Value.Text))
		switch name := onlyLetters(member.Name); name {
		case "success", "ok", "issuccess", "succeeded", "successful":
			if text == "false" || text == "0" {
				return aFlag
			}
		case "status", "result", "state", "stat", "message", "code", "errcode", "errorcode", "errno", "statuscode", "resultcode", "retcode", "ret", "rtcd", "infocode", "cod",
			"response", "responsestatus", "httpstatus", "httpcode", "failcode":
			if len(member.Value.Members) > 0 && name != "response" && name != "result" {
				found = max(found, failureSign(member.Value))
				if code := member.Value.All("value"); name == "status" && len(code) == 1 && code[0].Kind == jsonprefix.Number && !slices.Contains(successes, code[0].Text) {
					found = max(found, aNumber) // GeoNames: {"status": {"message": …, "value": 19}}
				}
			}
			if slices.Contains(failures, text) || name == "status" && failing.MatchString(text) {
				return aFlag
			}
			switch n, isNumber := header.Number(text); {
			case !isNumber || name == "message" || name == "result" || n >= 200 && n < 300:
			case n >= 400 && n < 600:
				return aFlag
			case !slices.Contains(successes, text), name == "status" && text == "0" && len(v.Members) > 1:
				found = max(found, aNumber)
			}
		}
	}
	return found
}

// errorHeaders are those in which gateways say why they refuse.
const errorHeaders = "X-Mashery-Error-Code|X-Error-Detail-Header|X-Error-Code|X-Amzn-Errortype|X-Error|X-Error-Message|X-Ca-Error-Message|X-Rejected-Reason|RateLimit-Reason"
