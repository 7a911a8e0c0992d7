import { startIdentity } from '../../../testing/index.ts'
import { findFreePort } from '../../helpers/port.ts'
import { typeIn } from '../../pages/chromium.ts'
import { PEOPLE, type PeerKind } from './peer.ts'

/** A second instance of this service, with its default settings. */
export const ours: PeerKind = {
  name: 'a second instance of this service',
  skip: false,
  async start (t, { redirectUri }) {
    const issuer = `http://127.0.0.1:${await findFreePort()}`
    const kit = await startIdentity({ t, rateLimit: false, oidc: { issuer } })
    const { users, clients } = kit.app.identity
    const admin = { user_id: 'operator', isAdmin: true }
    for (const { account, password, name, email, isVerified } of Object.values(PEOPLE)) {
      const { user_id } = await users.create({ data: { account, password, name } })
      await users.patch(user_id, { data: { email } }, admin)
      if (isVerified) await users.patch(user_id, { data: { email_verified: true } }, admin)
    }
    const owner = (await users.getByAccount(PEOPLE.ada.account))!
    const { clientId } = await clients.create({ data: { redirectUris: [redirectUri], scopes: [], name: 'Us', grants: ['code'], first_party: true }, credentials: true }, { ...admin, user_id: owner.user_id })
    const { clientSecret = '' } = await clients.require(clientId, admin)
    await kit.listen({ port: Number(new URL(issuer).port) })
    return {
      issuer,
      client: { clientId, clientSecret },
      signIn: async (tab, person) => await typeIn(tab, person),
      stop: kit.close
    }
  }
}
