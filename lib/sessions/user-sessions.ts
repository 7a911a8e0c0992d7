import type { UserSessions as Shown } from '../../schemas/support.ts'
import { unlessGone } from '../change-record.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import type { Actor } from '../roles.ts'
import type { People } from '../users/people.ts'
import type { OwnSessions } from './own-sessions.ts'
import type { TokenSessions } from './token-sessions.ts'

/** Lists and ends the sessions of somebody else. */
export function createUserSessions ({ people, ownSessions, tokenSessions }: {
  people: People
  ownSessions: Pick<OwnSessions, 'listBrowsers' | 'listTokenSessions' | 'endBrowser' | 'endTokenSession'>
  tokenSessions: Pick<TokenSessions, 'end'>
}) {
  return {
    /** @throws ErrNotFound, ErrPerm */
    async list (user_id: string, actor: Actor): Promise<Shown> {
      await people.requireReadable(user_id, actor)
      const [browsers, sessions] = await Promise.all([ownSessions.listBrowsers(user_id), ownSessions.listTokenSessions(user_id)])
      return {
        browsers: browsers.entries.map(({ uid, ...browser }) => ({ session_id: uid, ...browser })),
        sessions: sessions.entries.map(({ session_uid, ...session }) => defined({ ...session, browser_session_id: session_uid })),
        more: browsers.more + sessions.more
      }
    },

    /**
     * Ends a session of an app, or signs the person out of a browser.
     * @throws ErrNotFound, for another user's too, ErrPerm
     */
    async endOne (user_id: string, session_id: string, actor: Actor): Promise<void> {
      await people.requireHelpable(user_id, actor)
      for (const end of [ownSessions.endTokenSession, ownSessions.endBrowser]) {
        const ended = await unlessGone(end(user_id, session_id).then(() => true))
        if (ended === true) return
      }
      throw new IdentityError('ErrNotFound', 'sessionId: no such session of the user')
    },

    /**
     * Ends all sessions and tokens of a user, with one write.
     * @throws ErrNotFound, ErrPerm
     */
    async endAll (user_id: string, actor: Actor): Promise<void> {
      await people.requireHelpable(user_id, actor)
      await tokenSessions.end(user_id, undefined, (record) => people.checkMayHelp(record, actor))
    }
  }
}

export type UserSessions = ReturnType<typeof createUserSessions>
