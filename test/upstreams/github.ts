import type { Test } from 'tap'
import type { GivenUpstream } from '../../schemas/upstream.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { leave } from './through.ts'

export interface TestGithub {
  settings: GivenUpstream
  /** Sets who signs in next: the numeric id, and the primary address, which it has verified at some time. */
  says: (id: number, email: string) => void
  /** Signs in with it, up to the page of ours that follows. */
  enter: (browser: Browser) => Promise<Page>
}

/** A server with the shapes of GitHub's answers, written from its documentation. */
export async function startGithub (t: Test): Promise<TestGithub> {
  let [user, emails]: [object, object[]] = [{}, []]
  const server = await startUpstream(t, (response, { url }) => {
    const { pathname } = new URL(url, 'http://github')
    const bodies: Record<string, unknown> = { '/login/oauth/access_token': { access_token: 'gho_x', token_type: 'bearer' }, '/api/v3/user': user, '/api/v3/user/emails': emails }
    response.writeHead(pathname in bodies ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(bodies[pathname] ?? {}))
  })
  return {
    settings: { id: 'github', kind: 'github', issuer: server.url, clientId: 'c', clientSecret: 'shh', create: true },
    says (id, email) {
      user = { id, login: `user${id}`, name: `User ${id}` }
      emails = [{ email, primary: true, verified: true }]
    },
    async enter (browser) {
      const asked = await leave(browser, '/api/v1/auth/upstream/github')
      return await browser.open(`/api/v1/auth/upstream/github/callback?code=good&state=${asked.searchParams.get('state')}`)
    }
  }
}
