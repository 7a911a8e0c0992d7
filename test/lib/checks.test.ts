import t from 'tap'
import { checkRedirectUris } from '../../lib/checks.ts'

t.test('a redirect URI has no scheme that runs or reads something in the browser', async (t) => {
  for (const uri of [
    'javascript:alert(1)', 'JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'blob:https://a.example/1',
    'filesystem:https://a.example/temporary/x', 'view-source:https://a.example/'
  ]) {
    const scheme = uri.slice(0, uri.indexOf(':')).toLowerCase()
    t.throws(() => checkRedirectUris(['https://a.example/', uri]), { code: 'ErrParam', message: `redirectUris[1]: must not have the scheme ${scheme}` })
  }
  for (const uri of ['https://a.example/', 'http://localhost:3000/cb', 'com.example.app:/cb', 'about:blank']) t.strictSame(checkRedirectUris([uri]), [uri])
})
