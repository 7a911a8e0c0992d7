import t from 'tap'
import { skip } from './chromium.ts'
import { LONG, type Row, action, checkLook, client, shared } from './look.ts'

t.setTimeout(600_000)

/** A wide one, without a size of its own. */
const LOGO = `data:image/svg+xml;base64,${Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 60"><rect width="400" height="60" fill="#b3261e"/></svg>').toString('base64')}`

/** Every page, in each state that looks different. */
const ROWS: Row[] = [
  ['sign-in', 'sign-in', shared, 'Northwind ID'],
  ['sign-in-wrong', 'sign-in', { ...shared, account: 'ann@example.com', error: ({ errors }) => errors.wrongPassword }, 'Northwind ID'],
  ['sign-in-too-many', 'sign-in', { ...shared, account: 'ann@example.com', error: ({ errors }) => errors.tooManySeconds({ seconds: 42 }) }],
  ['second-step', 'second-step', { ...shared, kind: 'totp', others: ['recovery'] }, 'Northwind ID'],
  ['sign-in-passkey', 'sign-in', { ...shared, xsrf: 'x', passkey: { mode: 'get', conditional: true, options: {} }, error: ({ errors }) => errors.wrongPasskey }],
  ['sign-in-unverified', 'sign-in', { ...shared, unverified: true }],
  ['second-step-passkey', 'second-step', { ...shared, kind: 'passkey', others: ['totp', 'recovery'], passkey: { mode: 'get', options: {} }, signals: { signalUnknownCredential: {} } }],
  ['second-step-wrong', 'second-step', { ...shared, kind: 'totp', others: ['recovery'], error: ({ errors }) => errors.codeClosed }],
  ['second-step-recovery', 'second-step', { action, xsrf: 'x', kind: 'recovery', others: ['totp'], error: ({ errors }) => errors.wrongCode }, 'Northwind ID'],
  ['consent', 'consent', {
    ...shared,
    account: 'ann@example.com',
    scopes: [{ scope: 'openid' }, { scope: 'offline_access' }, { scope: 'roles' }, { scope: 'orders:read', meaning: 'read your orders' }],
    vouched: true,
    resource: 'Harbour orders',
    redirectUri: 'https://harbour.example/cb',
    otherAccount: '/form?account=other'
  }, 'Northwind ID'],
  ['consent-long', 'consent', {
    action, client: { name: LONG }, account: `${LONG.toLowerCase()}@example.com`, scopes: [{ scope: 'openid' }, { scope: `https://api.example/${LONG}` }], vouched: false, ownerDomain: `${LONG.toLowerCase()}.example`, redirectUri: 'com.example.harbour:/cb', otherAccount: '/form'
  }],
  ['sign-in-logo', 'sign-in', { ...shared, client: { ...client, logo: LOGO }, forgot: '/account/forgot' }, 'Northwind ID'],
  ['consent-logo', 'consent', {
    action, client: { ...client, logo: LOGO }, account: 'ann@example.com', scopes: [{ scope: 'openid' }], vouched: true, redirectUri: 'https://harbour.example/cb', otherAccount: '/form'
  }, 'Northwind ID'],
  ['consent-document', 'consent', {
    action, client: { name: LONG }, account: 'ann@example.com', scopes: [{ scope: 'openid' }], vouched: false, document: { host: 'agent.example', print: 'x' }, redirectUri: 'http://127.0.0.1:33418/callback', otherAccount: '/form'
  }],
  ['select-account', 'select-account', { action, client, account: 'ann@example.com', otherAccount: '/form?account=other' }, 'Northwind ID'],
  ['select-account-long', 'select-account', { action, client: { name: LONG }, account: `${LONG.toLowerCase()}@example.com`, otherAccount: '/form?account=other' }],
  ['device', 'device', { action, xsrf: 'x' }],
  ['device-wrong', 'device', { action, xsrf: 'x', code: 'WDJB-MJHT', error: ({ device }) => device.unknownCode }],
  ['device-compare', 'device-compare', { action, xsrf: 'x', code: 'WDJB-MJHT' }],
  ['device-consent', 'consent', {
    action, client, account: 'ann@example.com', scopes: [{ scope: 'openid' }, { scope: 'offline_access' }, { scope: 'orders:read', meaning: 'read your orders' }], vouched: true, device: { code: 'WDJB-MJHT', ip: '203.0.113.7' }, otherAccount: '/form'
  }, 'Northwind ID'],
  ['device-consent-long', 'consent', {
    action, client: { name: LONG }, account: `${LONG.toLowerCase()}@example.com`, scopes: [{ scope: 'openid' }], vouched: false, device: { code: 'WDJB-MJHT' }, otherAccount: '/form'
  }],
  ['device-done', 'device-done', { client }],
  ['sign-out', 'sign-out', { action, xsrf: 'x', client }],
  ['signed-out', 'signed-out', { client, next: { uri: 'https://harbour.example/', vouched: true } }],
  ['signed-out-unchecked', 'signed-out', { client: { name: LONG }, next: { uri: `https://${LONG.toLowerCase()}.example/`, vouched: false } }],
  ['sign-in-account', 'sign-in', { action, xsrf: 'x' }, 'Northwind ID'],
  ['sign-in-again', 'sign-in', { action, xsrf: 'x', account: 'ann@example.com', again: true }, 'Northwind ID'],
  ['signed-out-alone', 'signed-out', {}],
  ['sign-in-links', 'sign-in', { ...shared, forgot: '/account/forgot', signUp: '/account/sign-up' }],
  ['sign-in-providers', 'sign-in', { action, xsrf: 'x', upstreams: [{ id: 'google', name: 'Google', to: '/form' }, { id: 'work', name: 'Example Corp', to: '/form' }, { id: 'long', name: LONG, to: '/form' }], forgot: '/account/forgot', signUp: '/account/sign-up' }, 'Northwind ID'],
  ['sign-in-providers-passkey', 'sign-in', { ...shared, xsrf: 'x', passkey: { mode: 'get', conditional: true, options: {} }, upstreams: [{ id: 'google', name: 'Google', to: '/form' }, { id: 'github', name: 'GitHub', to: '/form' }], forgot: '/account/forgot' }, 'Northwind ID'],
  ['sign-in-again-providers', 'sign-in', { action, xsrf: 'x', account: 'ann@example.com', again: true, upstreams: [{ id: 'google', name: 'Google' }, { id: 'work', name: 'Example Corp' }] }, 'Northwind ID'],
  ['sign-in-confirm', 'sign-in', { ...shared, xsrf: 'x', notice: ({ upstreams }) => upstreams.confirm({ name: 'Example Corp' }) }, 'Northwind ID'],
  ['upstream-down', 'error', { message: ({ upstreams }) => upstreams.down, ways: [{ to: '/account/sign-in', text: ({ common }) => common.goBackToSignIn }] }, 'Northwind ID'],
  ['forgot', 'ask-link', { kind: 'forgot', action }],
  ['sign-up', 'ask-link', { kind: 'sign-up', action, value: 'ann', signIn: '/form', error: ({ links }) => links.signUp.notAddress }, 'Northwind ID'],
  ['link-sent', 'link-sent', { kind: 'forgot', action, typed: 'ann@example.com' }, 'Northwind ID'],
  ['link-sent-again', 'link-sent', { kind: 'sign-up', action, typed: `${LONG.toLowerCase()}@example.com`, again: true }],
  ['link-gone', 'error', { message: ({ links }) => links.gone, ways: [{ to: '/account/sign-up', text: ({ links }) => links.askAgain }, { to: '/account', text: ({ signIn }) => signIn.submit }] }, 'Northwind ID'],
  ['link-done-password', 'link-done', { what: 'password' }, 'Northwind ID'],
  ['set-password', 'set-password', { action, token: 'x', purpose: 'reset', account: `${LONG.toLowerCase()}@example.com`, min: 8 }],
  ['set-password-short', 'set-password', { action, token: 'x', purpose: 'sign-up', account: 'ann@example.com', min: 8, error: ({ errors }) => errors.passwordShort({ characters: 8 }) }, 'Northwind ID'],
  ['confirm-address', 'confirm-link', { action, token: 'x', purpose: 'verify', address: `${LONG.toLowerCase()}@example.com` }],
  ['confirm-change', 'confirm-change', { action, token: 'x', xsrf: 'x', account: 'ann@example.com', signedInAs: 'ann@example.com', address: `${LONG.toLowerCase()}@example.com` }],
  ['confirm-change-signed-out', 'confirm-change', { action, token: 'x', account: 'ann@example.com', address: 'ann@example.org' }],
  ['confirm-change-other', 'confirm-change', { action, xsrf: 'x', account: 'ann@example.com', signedInAs: `${LONG.toLowerCase()}@example.com`, address: 'ann@example.org' }],
  ['choose-account', 'choose-account', { action, xsrf: 'x', upstream: 'Example Corp', account: 'corp-x7k2m9qa', isFixed: false, error: ({ upstreams }) => upstreams.choose.taken }],
  ['choose-account-seen', 'choose-account', { action, xsrf: 'x', upstream: 'GitHub', account: 'github-x7k2m9qa', isFixed: false, seen: `${LONG.toLowerCase()}@example.com` }],
  ['choose-account-address', 'choose-account', { action, xsrf: 'x', upstream: LONG, account: `${LONG.toLowerCase()}@example.com`, isFixed: true }, 'Northwind ID'],
  ['switch-account', 'switch-account', { action, xsrf: 'x', upstream: LONG, account: `${LONG.toLowerCase()}@example.com` }, 'Northwind ID'],
  ['set-password-upstreams', 'set-password', { action, token: 'x', purpose: 'sign-up', account: 'ann@example.com', min: 8, upstreams: [{ id: 'corp', name: 'Example Corp' }, { id: 'long', name: LONG }] }, 'Northwind ID'],
  ['set-password-only', 'set-password', { action, token: 'x', purpose: 'invite', account: 'ann@example.com', min: 8, upstreams: [{ id: 'corp', name: 'Example Corp' }], only: 'Example Corp', error: ({ upstreams }) => upstreams.down }],
  ['link-done-upstream', 'link-done', { what: 'account-linked' }, 'Northwind ID'],
  ['undo', 'confirm-undo', { action, token: 'x', account: LONG, goes: [{ kind: 'upstream', name: LONG, at: '2026-11-24T10:00:00.000Z', place: 'Samsung Internet, Android, 2001:db8::1' }], stays: [{ kind: 'passkey', at: '2026-11-20T10:00:00.000Z' }], address: `${LONG.toLowerCase()}@example.com` }],
  ['undo-held', 'confirm-undo', { action, token: 'x', account: 'ann@example.com', goes: [], stays: [{ kind: 'upstream', name: LONG, at: '2026-11-20T10:00:00.000Z' }], taken: `${LONG.toLowerCase()}@example.com`, only: LONG, losesOnly: true }],
  ['link-done-undone', 'link-done', { what: 'undone', review: { stays: [{ kind: 'upstream', name: LONG, at: '2026-11-20T10:00:00.000Z' }] } }],
  ['link-done-review', 'link-done', { what: 'password', review: { stays: [{ kind: 'totp', at: '2026-11-20T10:00:00.000Z' }], undo: '/account/undo?token=x' } }],
  ['link-done', 'link-done', { what: 'account', to: { client, uri: 'https://harbour.example/', vouched: true } }],
  ['link-done-unchecked', 'link-done', { what: 'account', to: { client, uri: 'https://harbour.example/', vouched: false } }],
  ['home', 'home', { account: '/account', docs: '/docs' }, 'Northwind ID'],
  ['error', 'error', { message: ({ errors }) => errors.refused, code: 'invalid_redirect_uri', detail: 'redirect_uri did not match any of the registered redirect URIs', back: { client, uri: 'https://harbour.example/', vouched: false } }],
  ['error-plain', 'error', { message: ({ errors }) => errors.ourSide }, 'Northwind ID']
]

t.test('every page of a sign-in, wide and narrow, light and dark, in every language', { skip }, async (t) => await checkLook(t, ROWS))
