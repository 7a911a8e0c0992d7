import { createHash, randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { defined } from '../lib/defined.ts'
import { openBrowser } from './browser.ts'
import type { ServiceOptions } from '../lib/services.ts'

type Read = Parameters<NonNullable<ServiceOptions['readOutbound']>>[0]

/** What the host of an agent answers. */
export interface AgentAnswer {
  status?: number
  type?: string
  headers?: Record<string, string>
  body: string
}

/** An agent that nobody has registered: a client whose id is the URL of a document about it. */
export interface TestAgent {
  readonly clientId: string
  /** The document. Changes count from the next fetch on. */
  readonly document: Record<string, unknown>
  /** Replaces the answer of its host; an Error: it does not answer. Absent: the document. */
  answer?: AgentAnswer | Error | undefined
  /** How often its document was fetched. */
  readonly fetches: number
  /** Signs a person in on the pages of the service, allows what it asks for, and redeems the code. */
  authorize (person: { account: string, password: string }, request?: AgentRequest): Promise<AgentTokens>
  /** Redeems a refresh token. */
  refresh (refresh_token: string): Promise<AgentTokens>
}

export interface AgentRequest {
  /** Absent: `openid offline_access`. Empty: the request has none, and gets the scopes of the resource that are open to such clients. */
  scope?: string
  resource?: string
  redirect_uri?: string
}

export interface AgentTokens {
  access_token: string
  refresh_token?: string
  scope?: string
  [member: string]: unknown
}

const API = '/api/v1/auth'

/** Creates agents for a kit, and the host that serves their documents within this process. */
export function createAgents (getApp: () => FastifyInstance) {
  const agents = new Map<string, { agent: TestAgent, count: () => void }>()

  async function redeem (fields: Record<string, string>): Promise<AgentTokens> {
    const { statusCode, body } = await getApp().inject({
      method: 'POST', url: `${API}/token`, headers: { 'content-type': 'application/x-www-form-urlencoded' }, payload: String(new URLSearchParams(fields))
    })
    if (statusCode !== 200) throw new Error(`the token endpoint answered ${statusCode}: ${body}`)
    return JSON.parse(body) as AgentTokens
  }

  return {
    /** Answers for the hosts of agents, and passes all other requests on. */
    wrap: (read: Read): Read => async (request) => {
      const found = agents.get(request.url)
      if (found === undefined) return await read(request)
      found.count()
      const { answer = { body: JSON.stringify(found.agent.document) } } = found.agent
      if (answer instanceof Error) throw answer
      const { status = 200, type = 'application/json', headers = {}, body } = answer
      return { status, type, headers, body: Buffer.from(body) }
    },

    clear: () => agents.clear(),

    /**
     * Creates an agent. The kit needs the option `oidc.documents`, with the host of the agent.
     * @param given members of its document; `client_id` decides where it stands
     */
    create (given: Record<string, unknown> = {}): TestAgent {
      const clientId = typeof given.client_id === 'string' ? given.client_id : `https://agent.example/${randomBytes(6).toString('hex')}.json`
      const document: Record<string, unknown> = {
        client_name: 'An agent',
        redirect_uris: [new URL('/callback', clientId).href],
        token_endpoint_auth_method: 'none',
        ...given,
        client_id: clientId
      }
      let fetches = 0
      const agent: TestAgent = {
        clientId,
        document,
        get fetches () { return fetches },
        async authorize (
          { account, password },
          { scope = 'openid offline_access', resource, redirect_uri = String((document.redirect_uris as unknown[])[0]) } = {}
        ) {
          const browser = await openBrowser(getApp())
          const verifier = randomBytes(32).toString('base64url')
          let now = await browser.open(`${API}/authorize?${new URLSearchParams(defined({
            client_id: clientId,
            redirect_uri,
            response_type: 'code',
            scope: scope !== '' ? scope : undefined,
            resource,
            code_challenge: createHash('sha256').update(verifier).digest('base64url'),
            code_challenge_method: 'S256'
          }))}`)
          for (let pages = 0; 'page' in now && pages < 4; pages++) {
            now = await browser.submit(now.page, now.page.includes('name="decision"') ? { decision: 'allow' } : { account, password })
          }
          const code = 'left' in now ? now.left.searchParams.get('code') : null
          if (code === null) throw new Error(`the agent got no code: ${'left' in now ? now.left.search : 'the sign-in went on'}`)
          return await redeem(defined({ grant_type: 'authorization_code', client_id: clientId, code, redirect_uri, code_verifier: verifier, resource }))
        },
        refresh: async (refresh_token) => await redeem({ grant_type: 'refresh_token', client_id: clientId, refresh_token })
      }
      agents.set(clientId, { agent, count: () => { fetches++ } })
      return agent
    }
  }
}
