import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Accepted } from '../lib/accounts/accept.ts'
import type { InspectedLink } from '../lib/accounts/password.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Pages } from '../lib/pages/index.ts'
import type { Proved } from '../lib/proofs.ts'
import { UpstreamError } from '../lib/upstreams/failure.ts'
import type { ReturnToLink } from '../lib/upstreams/index.ts'
import { findServer, toRedirectUri } from '../lib/upstreams/kinds.ts'
import { createSignInCookie } from './account.ts'
import { findAskedLanguage } from './mail-language.ts'
import type { OidcMount } from './oidc-mount.ts'
import type { PageOptions } from './pages.ts'
import { readField } from './sign-in-forms.ts'
import { toLinkError } from './upstream-errors.ts'
import { toAnonymousTurn } from './turns.ts'

/** What the page of a link shows of other providers. */
type Offer = Pick<Pages['set-password'], 'upstreams' | 'only'>

/**
 * Other providers on the pages of invitations and sign-up links. A form of the page begins the sign-in there, because any site may open a
 * link: a stranger could otherwise connect the identity of whoever visits to an account that they were invited to.
 */
export function createUpstreamLinks (app: FastifyInstance, { getIssuer, look, limits }: Pick<OidcMount, 'getIssuer' | 'look' | 'limits'>) {
  const { upstreams } = app.identity
  const cookie = () => createSignInCookie(getIssuer())

  return {
    isOn: upstreams !== undefined,

    /** The providers that may complete a link, and the page that leads to them. */
    offer ({ becomes }: Pick<InspectedLink, 'becomes'>, client_id?: string): { view: Offer, page: Pick<PageOptions, 'formTo'> } {
      if (upstreams === undefined) return { view: {}, page: {} }
      const list = upstreams.listJoining(becomes, client_id)
      const only = list.find(({ id }) => id === upstreams.findOnly(becomes))
      return { view: { upstreams: list, only: only?.name }, page: { formTo: list.map(({ id }) => findServer(upstreams.require(id))) } }
    },

    /**
     * Sends the person to the provider that the form names. Null unless it names one. The caller has checked that the form is one of ours.
     * @throws PageError
     */
    async begin (
      request: FastifyRequest, reply: FastifyReply, place: ReturnToLink, { ticket, becomes }: InspectedLink
    ): Promise<FastifyReply | null> {
      const id = readField(request, 'upstream')
      if (upstreams === undefined || id === '') return null
      try {
        if (!upstreams.listJoining(becomes).some((one) => one.id === id)) throw new UpstreamError('off')
        const { secret } = cookie().begin(request, reply)
        const redirectUri = toRedirectUri(getIssuer(), id)
        const to = await upstreams.begin(id, { secret, redirectUri, intent: { kind: 'accept', place, ticket }, turn: toAnonymousTurn(request) })
        return reply.headers(pageHeaders({ look })).redirect(to, 303)
      } catch (error) {
        throw toLinkError(error)
      }
    },

    /**
     * Completes the link for which this browser has signed in with a provider.
     * @throws PageError, ErrTicket
     */
    async finish (request: FastifyRequest, place: ReturnToLink, locales?: string): Promise<Accepted & { proved: Proved }> {
      await limits.begin(request)
      try {
        const secret = cookie().find(request)
        const taken = upstreams === undefined || secret === undefined ? null : await upstreams.found.takeAccept(secret, place)
        if (upstreams === undefined || taken === null) throw new UpstreamError('over')
        const { found, ticket } = taken
        const proven = { upstream: upstreams.require(found.upstream), claimed: found.claimed }
        return await upstreams.identities.accept(proven, ticket, findAskedLanguage(request, locales)).catch((error: unknown) => {
          if (error instanceof UpstreamError) upstreams.identities.recordFailure(proven, error.refusal)
          throw error
        })
      } catch (error) {
        throw toLinkError(error)
      }
    }
  }
}

export type UpstreamLinks = ReturnType<typeof createUpstreamLinks>
