package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

func topCommand() *cli.Command {
	return &cli.Command{
		Name: "top", Usage: "the same as status, live, and steered by keys", ArgsUsage: "[BUDGET]",
		Description: `Shows every account as a bar of what is used of its limit and what is booked ahead,
pauses that count down, quarantines, how many wait in which process and for what,
and the refusals as they come. What changes in a store that tells is shown at once,
all else every second; a process says every ten seconds who waits in it. A Redis
that is down is waited for.

  up, down   select an account      p  pause it for a minute, after asking
  s          sort: worst or name    r  resume it, after asking
  /          filter by name         q  leave`,
		Flags: []cli.Flag{redisFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			budget, err := budgetArg(c)
			if err != nil {
				return err
			}
			if !isTerminal(c.Root().Writer) {
				return usagef("top wants a terminal: ration status -json is for programs")
			}
			kept, client, err := openStore(c)
			if err != nil {
				return err
			}
			defer client.Close()
			m := &top{ctx: ctx, kept: kept, client: client, budget: budget, changed: make(chan struct{}, 1), watches: make(map[string]func())}
			defer m.stop()
			_, err = tea.NewProgram(m, tea.WithAltScreen(), tea.WithContext(ctx), tea.WithInput(c.Root().Reader), tea.WithOutput(c.Root().Writer)).Run()
			return err
		},
	}
}

// A top is what is shown, and what its user does with it.
type top struct {
	ctx    context.Context
	kept   *ration.RedisStore
	client redis.UniversalClient
	budget string // "": all

	mu      sync.Mutex        // protects watches
	watches map[string]func() // what ends them, by budget
	changed chan struct{}     // a watch has heard of something

	width, height int
	rows          []row // as they are shown
	all           []store.Description
	read          time.Time // when all was read
	err           error     // why it could not be read since
	news          view.News
	selected      string // the key of a row
	byName        bool
	filter        string
	typing        bool   // the filter
	asking        string // what is to be confirmed; "": nothing
	confirmed     func() error
	said          string // what the last action did
}

// A row is one limit of an account.
type row struct {
	budget  *store.Description
	account store.DescribedAccount
	limit   store.LimitUsage
	name    string
}

func (r row) key() string { return r.budget.Budget + "\x00" + r.account.Account }

type (
	snapshot struct {
		all []store.Description
		err error
	}
	tick   struct{}
	heard  struct{}
	result struct {
		said string
		err  error
	}
)

// Init implements tea.Model.
func (m *top) Init() tea.Cmd { return tea.Batch(m.readStore, m.awaitChange, nextTick()) }

func nextTick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} }) }

// awaitChange returns when a watch has heard of something.
func (m *top) awaitChange() tea.Msg {
	select {
	case <-m.changed:
		return heard{}
	case <-m.ctx.Done():
		return nil
	}
}

// readStore reads all that is shown, and has the store tell of what changes in it.
func (m *top) readStore() tea.Msg {
	ctx, stop := context.WithTimeout(m.ctx, 2*time.Second)
	defer stop()
	all, err := describeAll(ctx, m.kept, m.budget)
	for _, d := range all {
		m.watch(d.Budget)
	}
	return snapshot{all, err}
}

func (m *top) watch(budget string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watches[budget] == nil {
		m.watches[budget] = m.kept.Watch(budget, func(store.News) {
			select {
			case m.changed <- struct{}{}:
			default:
			}
		})
	}
}

// stop ends all watches.
func (m *top) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, end := range m.watches {
		end()
	}
}

// Update implements tea.Model.
func (m *top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		return m, tea.Batch(m.readStore, nextTick())
	case heard:
		return m, tea.Batch(m.readStore, m.awaitChange)
	case snapshot:
		if m.err = msg.err; msg.err == nil {
			m.all, m.read = msg.all, time.Now()
			m.news.Take(m.all, m.read)
			view.WorstFirst(m.all)
			m.arrange()
		}
	case result:
		m.said = msg.said
		if msg.err != nil {
			m.said = msg.err.Error()
		}
		return m, m.readStore
	case tea.KeyMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// arrange makes the rows of what was read, the worst first or by name.
func (m *top) arrange() {
	m.rows = m.rows[:0]
	for i := range m.all {
		d := &m.all[i]
		for _, a := range d.Accounts {
			name := d.Budget + " " + view.Name(a)
			if m.filter != "" && !strings.Contains(name, m.filter) {
				continue
			}
			for _, l := range a.Limits {
				m.rows = append(m.rows, row{d, a, l, name})
			}
		}
	}
	if m.byName {
		slices.SortStableFunc(m.rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	}
	if len(m.rows) > 0 && m.index() < 0 {
		m.selected = m.rows[0].key()
	}
}

// index returns the place of the selected row; -1: there is none.
func (m *top) index() int {
	return slices.IndexFunc(m.rows, func(r row) bool { return r.key() == m.selected })
}

// press does what a key says.
func (m *top) press(key tea.KeyMsg) tea.Cmd {
	switch {
	case m.asking != "":
		do := m.confirmed
		m.asking, m.confirmed = "", nil
		if key.String() != "y" {
			m.said = "nothing was done"
			return nil
		}
		return func() tea.Msg { return result{"done", do()} }
	case m.typing:
		switch key.Type {
		case tea.KeyEnter, tea.KeyEsc:
			m.typing = false
		case tea.KeyBackspace:
			m.filter = m.filter[:max(0, len(m.filter)-1)]
		case tea.KeyRunes:
			m.filter += string(key.Runes)
		}
		m.arrange()
		return nil
	}
	switch key.String() {
	case "q", "ctrl+c":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "s":
		m.byName = !m.byName
		m.arrange()
	case "/":
		m.typing = true
	case "p":
		m.ask("pause", "for a minute", func(r row) error {
			_, err := m.kept.Pause(m.ctx, store.PauseRequest{Budget: r.budget.Budget, Account: r.account.Account, For: time.Minute, Cause: operator() + ", at ration top"})
			return err
		})
	case "R":
		m.askAll(func(r row) error {
			return view.Resume(m.ctx, m.kept, r.budget.Budget, "", operator())
		})
	case "r":
		m.ask("resume", "", func(r row) error {
			return view.Resume(m.ctx, m.kept, r.budget.Budget, r.account.Account, operator())
		})
	}
	return nil
}

// askAll has the user confirm that all of the selected account's budget is resumed.
func (m *top) askAll(do func(r row) error) {
	i := m.index()
	if i < 0 {
		return
	}
	r := m.rows[i]
	m.confirm(r, "resume all accounts and tokens of "+r.budget.Budget, "resume all", do)
}

// confirm has the user confirm what is to be done, which is then recorded in words.
func (m *top) confirm(r row, question, did string, do func(r row) error) {
	m.asking = question + "? y, or any other key"
	m.confirmed = func() error {
		if err := do(r); err != nil {
			return err
		}
		return action{Budget: r.budget.Budget, By: operator(), Did: did, Reason: "at ration top"}.record(m.ctx, m.client)
	}
}

// move selects the account before or after the selected one.
func (m *top) move(by int) {
	for i := m.index(); i >= 0 && i < len(m.rows); i += by {
		if key := m.rows[i].key(); key != m.selected {
			m.selected = key
			return
		}
	}
}

// ask has the user confirm what is to be done with the selected account.
func (m *top) ask(verb, how string, do func(r row) error) {
	i := m.index()
	if i < 0 {
		return
	}
	r := m.rows[i]
	m.confirm(r, strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, r.name, how)),
		strings.TrimSpace(fmt.Sprintf("%s account %s %s", verb, view.Name(r.account), how)), do)
}
