package ration

import (
	"context"
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
	"github.com/ration-go/ration/store"
)

type Account = store.Account
type Accounts = store.Accounts
type Algorithm = limit.Algorithm

var Algorithms = limit.Algorithms

type Answer = provider.Answer
type Attach = provider.Attach

var Bearer = provider.Bearer

type BookRequest = store.BookRequest
type Booking = store.Booking
type BookingID = store.BookingID
type CancelRequest = store.CancelRequest
type Debt = store.Debt
type EnterRequest = store.EnterRequest

var ErrExhausted = store.ErrExhausted
var ErrStoreUnavailable = store.ErrStoreUnavailable

type ExhaustedError = store.ExhaustedError
type Feedback = provider.Feedback

const FixedWindow = limit.FixedWindow
const Forever = store.Forever
const GCRA = limit.GCRA

var HeaderNamed = provider.HeaderNamed

type Limit = limit.Limit
type LimitDebt = store.LimitDebt
type LimitUsage = store.LimitUsage
type LimitsError = store.LimitsError
type MemoryStore = memstore.MemoryStore

var NewAccounts = store.NewAccounts
var NewBookingID = store.NewBookingID

type OweRequest = store.OweRequest

const PackedLog = limit.PackedLog

var ParseLimit = limit.ParseLimit

type PauseRequest = store.PauseRequest

var PerDay = limit.PerDay
var PerHour = limit.PerHour
var PerMinute = limit.PerMinute
var PerSecond = limit.PerSecond

type Provider = provider.Provider

var ProviderNamed = presets.ProviderNamed
var ProviderNames = presets.ProviderNames
var QueryNamed = provider.QueryNamed

type Reason = provider.Reason

const ReasonBan = provider.ReasonBan
const ReasonBilling = provider.ReasonBilling
const ReasonConcurrency = provider.ReasonConcurrency
const ReasonDeadToken = provider.ReasonDeadToken
const ReasonDenied = provider.ReasonDenied
const ReasonLock = provider.ReasonLock
const ReasonOverload = provider.ReasonOverload
const ReasonPartial = provider.ReasonPartial
const ReasonQuota = provider.ReasonQuota
const ReasonSecondary = provider.ReasonSecondary
const ReasonTooLarge = provider.ReasonTooLarge
const ReasonUnauthorized = provider.ReasonUnauthorized

const ResetAny = provider.ResetAny

type ResetForm = provider.ResetForm

const ResetMilliseconds = provider.ResetMilliseconds

type ResetRequest = store.ResetRequest

const ResetSeconds = provider.ResetSeconds
const ResetUnix = provider.ResetUnix

type Ruling = store.Ruling
type Scope = provider.Scope

const ScopeAccount = provider.ScopeAccount
const ScopeApp = provider.ScopeApp
const ScopeBucket = provider.ScopeBucket
const ScopeEndpoint = provider.ScopeEndpoint
const ScopeIP = provider.ScopeIP
const ScopeIssue = provider.ScopeIssue
const ScopeMember = provider.ScopeMember
const ScopeObject = provider.ScopeObject
const ScopeOrg = provider.ScopeOrg
const ScopePage = provider.ScopePage
const ScopeProject = provider.ScopeProject
const ScopeResource = provider.ScopeResource
const ScopeTenant = provider.ScopeTenant
const ScopeToken = provider.ScopeToken
const ScopeUser = provider.ScopeUser

type Sign = provider.Sign

const SlidingLog = limit.SlidingLog
const SlidingWindow = limit.SlidingWindow

type Spending = store.Spending
type Status = store.Status
type StatusRequest = store.StatusRequest
type Store = store.Store
type StoreError = store.StoreError

const StreamLog = limit.StreamLog
const SubWindows = limit.SubWindows

type Told[T any] = provider.Told[T]
type Usage = store.Usage
type UsageRequest = store.UsageRequest
type Window = provider.Window
type WindowFields = provider.WindowFields

var _ context.Context
var _ http.Header
var _ time.Time
