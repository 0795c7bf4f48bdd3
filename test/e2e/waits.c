/*
 * waits - a library that waits for the locks it is given: one function for each kind.
 */
#include <pthread.h>
#include <semaphore.h>

int wait_mutex(pthread_mutex_t *mutex);
int wait_rwlock(pthread_rwlock_t *rwlock);
int wait_sem(sem_t *sem);

int wait_mutex(pthread_mutex_t *mutex)
{
	return pthread_mutex_lock(mutex) || pthread_mutex_unlock(mutex);
}

int wait_rwlock(pthread_rwlock_t *rwlock)
{
	return pthread_rwlock_wrlock(rwlock) || pthread_rwlock_unlock(rwlock);
}

int wait_sem(sem_t *sem)
{
	return sem_wait(sem) || sem_post(sem);
}
