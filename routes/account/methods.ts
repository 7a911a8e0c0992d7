import type { FastifyInstance } from 'fastify'
import type { Pages } from '../../lib/pages/contract.ts'
import type { Signals } from '../../lib/pages/script.ts'
import { toUserHandle } from '../../lib/ways/passkey-material.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { listLinkable, nameProvider } from './identities.ts'
import { createPages, readDone } from './page.ts'

/** The lists that this page has replaced: emails, bookmarks and password managers know them. */
const FORMER_LISTS = ['/factors', '/identities']

/** Every sign-in method of a person on one page, which only lists them. What they do to one of them has a page of its own. */
export function methodPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome } = mount
  const { heldIdentities, ownFactors, passkeys, upstreams, ways } = app.identity

  /** Tells the browser after a removal which passkeys are left, so that it no longer offers the others. */
  async function tellAccepted (user_id: string): Promise<Signals> {
    const allAcceptedCredentialIds = await ownFactors.listCredentialIds(user_id)
    return { signalAllAcceptedCredentials: { rpId: passkeys.party?.id, userId: toUserHandle(user_id), allAcceptedCredentialIds } }
  }

  async function listIdentities (user_id: string): Promise<Pick<Pages['account-methods'], 'identities' | 'upstreams'>> {
    if (upstreams === undefined) return { upstreams: [] }
    const identities = (await heldIdentities.list(user_id)).map(({ identity_id: id, created_at: at, last_used_at, ...identity }) => (
      { id, at, name: nameProvider(identity), last_used_at, off: identity.name === undefined }))
    return { identities, upstreams: listLinkable(upstreams) }
  }

  createPages(app, mount, visits)('/methods', 'account-methods', {
    section: 'methods',
    sensitive: true,
    changesWays: true,
    async show ({ user: { user_id } }, request) {
      return {
        ...await ownFactors.list(user_id),
        ...await listIdentities(user_id),
        mayAdd: ways.canAddFactors,
        mayAddPasskey: ways.canAddFactors && passkeys.party !== undefined,
        ...(readDone(request).done === 'passkey-removed' && { signals: await tellAccepted(user_id) })
      }
    }
  })

  for (const path of FORMER_LISTS) {
    app.get(path, { schema: { hide: true } }, async (_request, reply) => await reply.redirect(`${getHome()}/methods`, 303))
  }
}
