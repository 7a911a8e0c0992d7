import type { Language } from '../pages/texts/language.ts'
import type { AccountContext } from './context.ts'

/** Keeps the language of a user, for their mails. */
export function createLanguageMemory ({ users, onError }: Pick<AccountContext, 'users' | 'onError'>) {
  return {
    /**
     * Stores the language of the pages that a user sees. A failure is reported to the operator only, since a sign-in is worth more.
     * @param options.chosen whether the user chose it: no language of a browser or an app replaces it then
     */
    async rememberLanguage (user_id: string, language: Language, { chosen }: { chosen: boolean }): Promise<void> {
      try {
        const user = await users.get(user_id)
        if (user === null) return
        const { language: previous, language_chosen: isChosen = false } = user
        if (chosen ? previous === language && isChosen : previous === language || isChosen) return
        // No rule depends on the language, so the write needs no condition on the rest of the record.
        await users.update(user_id, { set: chosen ? { language, language_chosen: true } : { language } })
      } catch (cause) {
        onError(new Error('the language of a user was not stored', { cause }))
      }
    }
  }
}
