import t from 'tap'
import { checkRedirectUris } from '../../lib/checks.ts'
import { findRedirectUriProblem } from '../../lib/redirect-uris.ts'

const SCHEME = /^must begin with https:\/\/, with http:\/\/ and localhost, /
const ABSOLUTE = 'must be an absolute URI'
const PORT = 'must have a port from 1 to 65535'
const USER = 'must not have user information'

t.test('redirect URIs that are accepted, as they are', async (t) => {
  for (const uri of [
    'https://app.example', 'https://app.example/', 'HTTPS://B.example/cb', 'https://app.example:8443/cb?tenant=1&codes=2', 'https://192.0.2.7/cb', 'https://localhost/cb',
    'http://localhost', 'http://localhost:3000/cb', 'http://LocalHost/cb', 'http://127.0.0.1/cb', 'http://127.0.0.1:65535/cb', 'http://[::1]/cb?a', 'http://[::1]:1/',
    'com.example.app:/cb', 'com.example.app://cb', 'com.example.app:/cb?next=code', 'com.example.my-app:/me@home', 'COM.example:/cb', 'https://app.example/cb?a=code&b=state'
  ]) t.strictSame(checkRedirectUris([uri]), [uri], uri)
})

t.test('redirect URIs that are refused', async (t) => {
  for (const [cause, uris] of [
    // RFC 9700, 4.1: without TLS anyone on the way reads the code.
    [SCHEME, [
      'http://evil.example/cb', 'http://127.0.0.2/cb', 'http://127.1/cb', 'http://2130706433/cb', 'http://0x7f.1/', 'http://127.0.0.%31/', 'http://[::]/', 'http://[::ffff:127.0.0.1]/',
      'http://0.0.0.0/', 'http://localhost.evil.example/', 'http://localhost./', 'http://127.0.0.1.evil.example/', 'http:/localhost/', 'http:localhost', 'http:///localhost/'
    ]],
    // RFC 8252, 7.1. What a browser or the system itself acts on has no dot.
    [SCHEME, [
      'feed:javascript:alert(1)', 'jar:x', 'chrome://x', 'about:srcdoc', 'about:blank', 'ms-msdt:/id', 'javascript:alert(1)', 'JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x',
      'file:///etc/passwd', 'blob:https://a.example/1', 'filesystem:https://a.example/temporary/x', 'view-source:https://a.example/', 'intent:x', 'myapp:/cb', 'ftp://a.example/',
      'ws://a.example/', 'mailto:ann@a.example', 'app.:/cb', 'app..x:/cb', 'web+app.example:/cb'
    ]],
    // The URL parser reads the first three as a host.
    [SCHEME, ['https:/evil.example', 'https:evil.example', 'https:///evil.example', 'https://']],
    [USER, ['https://user:pass@x/', 'http://user:pass@localhost/', 'https://app.example@evil.example/', 'https://@evil.example/', 'http://localhost:80@evil.example/', 'com.example.app://a@b/']],
    [PORT, ['http://127.0.0.1:99999/cb', 'http://localhost:0/', 'https://a.example:65536', 'https://a.example:00099999?a', 'http://[::1]:99999/cb', 'com.example.app://x:99999/']],
    ['must not have a fragment', ['https://a.example/#', 'com.example.app:/cb#x']],
    [ABSOLUTE, ['', '/cb', 'app.example/cb', 'https://a b', 'https://a.example\\@b/', 'https://ä.example/', 'https://a.example/\n', 'https://[::1', 'https://:80/', 'https://a.example/%zz']],
    ['must not have more than 2048 characters', [`https://a.example/${'x'.repeat(2031)}`]]
  ] as const) {
    for (const uri of uris) t.match(findRedirectUriProblem(uri), cause, uri)
  }
})

t.test('a redirect URI has no parameter of the authorization response', async (t) => {
  const names = [
    'code', 'state', 'iss', 'error', 'error_description', 'error_uri', 'response', 'session_state', 'scope', 'id_token', 'access_token', 'refresh_token', 'token_type', 'expires_in'
  ]
  for (const name of names) {
    const cause = `must not have the query parameter ${name}, which belongs to the response`
    for (const query of [`${name}=x`, `a=b&${name}=x`, name, `${name}=`, `%${name.charCodeAt(0).toString(16)}${name.slice(1)}=x`, `${name.toUpperCase()}=x`]) {
      for (const uri of [`https://x/cb?${query}`, `http://localhost/?${query}`, `com.example.app:/cb?${query}`]) t.equal(findRedirectUriProblem(uri), cause, uri)
    }
  }
})

t.test('an error names the item and the cause, and does not quote the URI', async (t) => {
  t.throws(() => checkRedirectUris(['https://ok.example/', 'https://ann:hunter2@x/']), { code: 'ErrParam', message: `redirectUris[1]: ${USER}` })
})
